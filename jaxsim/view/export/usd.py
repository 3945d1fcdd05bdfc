"""Motions as scenes of USD (.usdz, .usd, .usdc, .usda): transforms with time samples.

The stage has the z axis up and meters as unit. Each body is an Xform with samples of its position
and orientation, each geom or site a Mesh below it; vertices of flexes and skins have samples, too.
A package (.usdz) contains the images of textures; elsewhere the mean color replaces an image.
"""

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxsim.optional import require
from jaxsim.view.export.clip import Clip, Soft, Solid
from jaxsim.view.export.surface import Material, vertex_normals

USD_MODULES = ("pxr.Usd", "PIL.Image")
USD_PACKAGE = ".usdz"
_FACE_VERTICES = 3
_NAME_KEY = "name"  # custom data of a prim: the name in the model, which may not be an identifier


class _Libraries(NamedTuple):
    """Modules of USD."""

    Gf: Any
    Sdf: Any
    Tf: Any
    Usd: Any
    UsdGeom: Any
    UsdShade: Any
    UsdUtils: Any
    Vt: Any


def write_usd(clip: Clip, path: Path) -> list[str]:
    """Write a motion as a scene of USD; return what is left out."""
    lib = _Libraries(*(require(f"pxr.{name}", "export") for name in _Libraries._fields))
    with tempfile.TemporaryDirectory() as folder:
        package = path.suffix == USD_PACKAGE
        inner = Path(folder) / "motion.usdc" if package else path
        scene = _Scene(lib, clip, inner, Path(folder) if package else None)
        scene.write()
        if package and not lib.UsdUtils.CreateNewUsdzPackage(
            lib.Sdf.AssetPath(str(inner)), str(path)
        ):
            raise OSError(f"'{path}': USD could not write the package")
    fields = ", ".join(curves.name for curves in clip.curves)
    left_out = [f"recorded fields: {fields}"] if fields else []
    if scene.lost_images:
        left_out.append(f"images of {scene.lost_images} materials; a {USD_PACKAGE} file has them")
    return left_out


class _Scene:
    """A stage under construction.

    Attributes:
      lost_images: number of materials whose image was replaced by its mean color.
    """

    def __init__(self, lib: _Libraries, clip: Clip, path: Path, images: Path | None):
        self._lib, self._clip, self._images = lib, clip, images
        self._path = path
        # In memory, because USD would keep a file open under its temporary name.
        self._stage = lib.Usd.Stage.CreateInMemory(path.name)
        self._materials: dict[tuple, Any] = {}
        self._taken: set[str] = set()
        self._codes = [float(t) for t in clip.time * clip.rate]
        self.lost_images = 0

    def write(self) -> None:
        """Write all worlds to the file."""
        lib, clip, stage = self._lib, self._clip, self._stage
        lib.UsdGeom.SetStageUpAxis(stage, lib.UsdGeom.Tokens.z)
        lib.UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        stage.SetTimeCodesPerSecond(clip.rate)
        stage.SetFramesPerSecond(clip.rate)
        stage.SetStartTimeCode(self._codes[0])
        stage.SetEndTimeCode(self._codes[-1])
        root = self._define(lib.UsdGeom.Xform, "", clip.title)
        stage.SetDefaultPrim(root.GetPrim())
        for world, name in enumerate(clip.worlds):
            above = self._define(lib.UsdGeom.Xform, root.GetPath(), name).GetPath()
            bodies = [self._body(above, world, b) for b in range(len(clip.bodies))]
            for solid in clip.solids_of(world):
                self._solid(bodies[solid.body], solid)
            for soft in clip.softs:
                self._soft(above, soft, soft.vertex[:, world])
        if not stage.GetRootLayer().Export(str(self._path)):
            raise OSError(f"'{self._path}': USD could not write the file")

    def _define(self, kind: Any, above: Any, name: str) -> Any:
        """Return a new prim below another, with an unused identifier and the name of the model."""
        first = identifier = f"{above}/{self._lib.Tf.MakeValidIdentifier(name)}"
        number = 2
        while identifier in self._taken:
            identifier, number = f"{first}_{number}", number + 1
        self._taken.add(identifier)
        made = kind.Define(self._stage, identifier)
        made.GetPrim().SetCustomDataByKey(_NAME_KEY, name)
        return made

    def _body(self, above: Any, world: int, body: int) -> Any:
        """Add a body; return the path of its prim."""
        clip = self._clip
        made = self._define(self._lib.UsdGeom.Xform, above, clip.bodies[body])
        pos, quat = clip.pos[:, world, body], clip.quat[:, world, body]
        self._place(made, pos, quat, self._codes if clip.moving[body] else None)
        return made.GetPath()

    def _place(self, made: Any, pos: np.ndarray, quat: np.ndarray, codes: Any) -> None:
        """Set the pose of a prim: positions (frames, 3) and orientations (frames, 4)."""
        gf = self._lib.Gf
        translate = made.AddTranslateOp()
        orient = made.AddOrientOp(self._lib.UsdGeom.XformOp.PrecisionDouble)
        for k, code in enumerate(codes or [self._lib.Usd.TimeCode.Default()]):
            translate.Set(gf.Vec3d(*map(float, pos[k])), code)
            orient.Set(gf.Quatd(*map(float, quat[k])), code)

    def _solid(self, above: Any, solid: Solid) -> None:
        surface = solid.surface
        made = self._define(self._lib.UsdGeom.Mesh, above, solid.name)
        self._place(made, solid.pos[None], solid.quat[None], None)
        made.CreatePointsAttr(self._vectors(surface.vertex))
        self._mesh(made, surface.face, surface.texcoord, surface.material)
        made.CreateNormalsAttr(self._vectors(surface.normal))
        made.CreateExtentAttr(self._vectors(_extent(surface.vertex)))

    def _mesh(
        self, made: Any, face: np.ndarray, texcoord: np.ndarray | None, material: Material
    ) -> None:
        """Set triangles and material of a mesh."""
        lib, vt = self._lib, self._lib.Vt
        counts = np.full(len(face), _FACE_VERTICES, np.int32)
        made.CreateFaceVertexCountsAttr(vt.IntArray.FromNumpy(counts))
        indices = np.ascontiguousarray(face.reshape(-1), np.int32)
        made.CreateFaceVertexIndicesAttr(vt.IntArray.FromNumpy(indices))
        made.CreateSubdivisionSchemeAttr(lib.UsdGeom.Tokens.none)
        made.SetNormalsInterpolation(lib.UsdGeom.Tokens.vertex)
        shown = material if self._images is not None and texcoord is not None else material.plain
        self.lost_images += shown.image is not material.image
        made.CreateDisplayColorAttr(self._vectors(shown.plain.linear[None, :3]))
        made.CreateDisplayOpacityAttr([float(shown.rgba[3])])
        if texcoord is not None:
            # The texture coordinates of USD start at the bottom.
            bottom = np.ascontiguousarray(texcoord * [1, -1] + [0, 1], np.float32)
            made_st = lib.UsdGeom.PrimvarsAPI(made).CreatePrimvar(
                "st", lib.Sdf.ValueTypeNames.TexCoord2fArray, lib.UsdGeom.Tokens.vertex
            )
            made_st.Set(vt.Vec2fArray.FromNumpy(bottom))
        prim = made.GetPrim()
        lib.UsdShade.MaterialBindingAPI.Apply(prim).Bind(self._material(shown))

    def _soft(self, above: Any, soft: Soft, vertex: np.ndarray) -> None:
        """Add a flex or skin with vertices (frames, n, 3) in each frame."""
        kind = self._lib.UsdGeom.BasisCurves if soft.rod else self._lib.UsdGeom.Mesh
        made = self._define(kind, above, soft.name)
        vertex = vertex[:, soft.face].reshape(len(vertex), -1, 3) if soft.rod else vertex
        self._sample(made.CreatePointsAttr(), vertex)
        low, high = vertex.min(axis=1), vertex.max(axis=1)
        margin = soft.radius * np.array([[-1.0], [1.0]])
        self._sample(made.CreateExtentAttr(), np.stack([low, high], axis=1) + margin)
        if soft.rod:
            counts = np.full(len(soft.face), 2, np.int32)
            made.CreateTypeAttr(self._lib.UsdGeom.Tokens.linear)
            made.CreateCurveVertexCountsAttr(self._lib.Vt.IntArray.FromNumpy(counts))
            made.CreateWidthsAttr([2 * soft.radius])
            made.SetWidthsInterpolation(self._lib.UsdGeom.Tokens.constant)
            made.CreateDisplayColorAttr(self._vectors(soft.material.linear[None, :3]))
            return
        self._mesh(made, soft.face, soft.texcoord, soft.material)
        self._sample(made.CreateNormalsAttr(), vertex_normals(vertex, soft.face))
        made.CreateDoubleSidedAttr(True)

    def _sample(self, attribute: Any, values: np.ndarray) -> None:
        """Set the value of an attribute in each frame, (frames, n, 3)."""
        for code, value in zip(self._codes, values, strict=True):
            attribute.Set(self._vectors(value), code)

    def _vectors(self, values: np.ndarray) -> Any:
        return self._lib.Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(values, np.float32))

    def _material(self, material: Material) -> Any:
        """Return the prim of a material; equal ones are written once."""
        image = None if material.image is None else material.image.tobytes()
        parameters = (*material.rgba, material.metallic, material.roughness, *material.emission)
        key = (*parameters, image)
        if key not in self._materials:
            self._materials[key] = self._make_material(material)
        return self._materials[key]

    def _make_material(self, material: Material) -> Any:
        """Add a UsdPreviewSurface; return its material."""
        lib, number = self._lib, len(self._materials)
        types, vector = lib.Sdf.ValueTypeNames, lib.Gf.Vec3f
        above = self._stage.GetDefaultPrim().GetPath()
        made = self._define(lib.UsdShade.Material, above, f"material {number}")
        shader = self._define(lib.UsdShade.Shader, made.GetPath(), "surface")
        shader.CreateIdAttr("UsdPreviewSurface")
        color, opacity = vector(*map(float, material.linear[:3])), float(material.rgba[3])
        diffuse = shader.CreateInput("diffuseColor", types.Color3f)
        diffuse.Set(color)
        shader.CreateInput("opacity", types.Float).Set(opacity)
        shader.CreateInput("metallic", types.Float).Set(material.metallic)
        shader.CreateInput("roughness", types.Float).Set(material.roughness)
        emission = vector(*map(float, material.emission))
        shader.CreateInput("emissiveColor", types.Color3f).Set(emission)
        if material.image is not None:
            scale = lib.Gf.Vec4f(*color, 1.0)
            texture = self._texture(made.GetPath(), material.image, f"image{number}.png", scale)
            diffuse.ConnectToSource(texture.ConnectableAPI(), "rgb")
        made.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
        return made

    def _texture(self, above: Any, image: np.ndarray, name: str, scale: Any) -> Any:
        """Write an image next to the scene; return the shader that reads it at `st`."""
        assert self._images is not None
        lib, types = self._lib, self._lib.Sdf.ValueTypeNames
        require("PIL.Image", "export").fromarray(image).save(self._images / name)
        reader = self._define(lib.UsdShade.Shader, above, "st")
        reader.CreateIdAttr("UsdPrimvarReader_float2")
        reader.CreateInput("varname", types.String).Set("st")
        texture = self._define(lib.UsdShade.Shader, above, "texture")
        texture.CreateIdAttr("UsdUVTexture")
        texture.CreateInput("file", types.Asset).Set(name)
        texture.CreateInput("scale", types.Float4).Set(scale)
        texture.CreateInput("sourceColorSpace", types.Token).Set("sRGB")
        for side in ("wrapS", "wrapT"):
            texture.CreateInput(side, types.Token).Set("repeat")
        place = reader.CreateOutput("result", types.Float2)
        texture.CreateInput("st", types.Float2).ConnectToSource(place)
        texture.CreateOutput("rgb", types.Float3)
        return texture


def _extent(vertex: np.ndarray) -> np.ndarray:
    """Return the lowest and the highest corner of points, (2, 3)."""
    return np.stack([vertex.min(axis=0), vertex.max(axis=0)])
