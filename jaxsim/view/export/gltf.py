"""Motions as binary glTF 2.0 files (.glb): a node for each body, with an animation.

glTF has its y axis up: the root node rotates the z axis of the model there. Quaternions are scalar
last, colors linear, and texture coordinates start at the top left (Khronos, glTF 2.0
specification, 3.5, 3.7 and 3.9). Vertices that move one by one have no compact form in glTF, so
flexes and skins are left out.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.optional import require
from jaxsim.version import __version__
from jaxsim.view.export.clip import Clip, Solid
from jaxsim.view.export.surface import Material, Surface

GLTF_MODULES = ("pygltflib", "PIL.Image")
_SCALAR_FIRST = [1, 2, 3, 0]  # from quaternions (w, x, y, z) to (x, y, z, w)
_Z_TO_Y = [-(0.5**0.5), 0.0, 0.0, 0.5**0.5]  # rotation by -90 degrees about x, (x, y, z, w)
_ALIGNMENT = 4  # bytes to which parts of the buffer are aligned
_FLOAT, _UNSIGNED = 5126, 5125  # componentType of float32 and of uint32
_SHAPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}  # by the components of an item
_VERTICES, _INDICES = 34962, 34963  # target of a bufferView


def write_gltf(clip: Clip, path: Path) -> list[str]:
    """Write a motion as a binary glTF file; return what is left out."""
    file = _File(require("pygltflib", "export"))
    root = file.node(name=clip.title, rotation=_Z_TO_Y)
    file.made.scenes, file.made.scene = [file.lib.Scene(nodes=[root])], 0
    meshes = {solid.name: file.mesh(solid) for solid in clip.solids}
    animated = []
    for world, name in enumerate(clip.worlds):
        bodies = []
        for body, body_name in enumerate(clip.bodies):
            solids = [s for s in clip.solids_of(world) if s.body == body]
            pos, quat = clip.pos[:, world, body], clip.quat[:, world, body][:, _SCALAR_FIRST]
            below = [_solid_node(file, s, meshes[s.name]) for s in solids]
            bodies.append(file.node(body_name, pos[0], quat[0], below))
            if clip.moving[body] and len(clip.time) > 1:
                animated.append((bodies[-1], pos, quat))
        file.made.nodes[root].children.append(file.node(name, children=bodies))
    if animated:
        file.animate(clip.time, animated)
    file.save(path)
    fields = ", ".join(curves.name for curves in clip.curves)
    left_out = [f"{s.name}: glTF has no compact form for its vertices" for s in clip.softs]
    return left_out + ([f"recorded fields: {fields}"] if fields else [])


def _solid_node(file: "_File", solid: Solid, mesh: int) -> int:
    node = file.node(solid.name, solid.pos, solid.quat[_SCALAR_FIRST])
    file.made.nodes[node].mesh = mesh
    return node


class _File:
    """A glTF file under construction: its JSON, and one buffer.

    Attributes:
      lib: the module pygltflib.
      made: the `GLTF2` object.
    """

    def __init__(self, lib: Any):
        self.lib = lib
        self.made = lib.GLTF2(asset=lib.Asset(version="2.0", generator=f"jaxsim {__version__}"))
        self._buffer = bytearray()
        self._materials: dict[tuple, int] = {}
        self._images: dict[bytes, int] = {}

    def node(self, name: str, pos: Any = None, rotation: Any = None, children: Any = ()) -> int:
        """Add a node; return its index."""
        made = self.lib.Node(name=name, children=list(children))
        if pos is not None:
            made.translation = [float(x) for x in pos]
        if rotation is not None:
            made.rotation = [float(x) for x in rotation]
        return _append(self.made.nodes, made)

    def mesh(self, solid: Solid) -> int:
        """Add the mesh of a geom or site; return its index."""
        surface, lib = solid.surface, self.lib
        attributes = lib.Attributes(
            POSITION=self._accessor(surface.vertex, _VERTICES),
            NORMAL=self._accessor(surface.normal, _VERTICES),
        )
        if surface.texcoord is not None:
            attributes.TEXCOORD_0 = self._accessor(surface.texcoord, _VERTICES)
        primitive = lib.Primitive(
            attributes=attributes,
            indices=self._accessor(surface.face.reshape(-1, 1), _INDICES, np.uint32),
            material=self._material(surface),
        )
        return _append(self.made.meshes, lib.Mesh(name=solid.name, primitives=[primitive]))

    def animate(self, time: np.ndarray, nodes: list[tuple[int, np.ndarray, np.ndarray]]) -> None:
        """Add an animation of nodes with positions (frames, 3) and rotations (frames, 4)."""
        lib, at = self.lib, self._accessor(time[:, None])
        animation = lib.Animation(name="motion")
        for node, pos, quat in nodes:
            for path, values in (("translation", pos), ("rotation", quat)):
                sampler = lib.AnimationSampler(input=at, output=self._accessor(values))
                target = lib.AnimationChannelTarget(node=node, path=path)
                index = _append(animation.samplers, sampler)
                animation.channels.append(lib.AnimationChannel(sampler=index, target=target))
        self.made.animations.append(animation)

    def save(self, path: Path) -> None:
        """Write the file."""
        self.made.buffers.append(self.lib.Buffer(byteLength=len(self._buffer)))
        self.made.set_binary_blob(bytes(self._buffer))
        path.write_bytes(b"".join(self.made.save_to_bytes()))

    def _view(self, content: bytes, target: int | None = None) -> int:
        """Append bytes to the buffer; return the index of their view."""
        self._buffer += bytes(-len(self._buffer) % _ALIGNMENT)
        view = self.lib.BufferView(
            buffer=0, byteOffset=len(self._buffer), byteLength=len(content), target=target
        )
        self._buffer += content
        return _append(self.made.bufferViews, view)

    def _accessor(self, values: np.ndarray, target: int | None = None, dtype: Any = None) -> int:
        """Append an array (n, components), float32 by default; return the index of its accessor."""
        array = np.ascontiguousarray(values, dtype or np.float32)
        accessor = self.lib.Accessor(
            bufferView=self._view(array.tobytes(), target),
            componentType=_FLOAT if array.dtype == np.float32 else _UNSIGNED,
            count=len(array),
            type=_SHAPES[array.shape[1]],
            min=array.min(axis=0).tolist(),
            max=array.max(axis=0).tolist(),
        )
        return _append(self.made.accessors, accessor)

    def _material(self, surface: Surface) -> int:
        """Return the index of the material of a surface; equal ones are written once."""
        material, lib = surface.material, self.lib
        texture = None
        if material.image is not None and surface.texcoord is not None:
            texture = self._texture(material.image)
        key = (*material.linear, material.metallic, material.roughness, *material.emission, texture)
        if key not in self._materials:
            made = lib.Material(
                pbrMetallicRoughness=lib.PbrMetallicRoughness(
                    baseColorFactor=material.linear.tolist(),
                    metallicFactor=material.metallic,
                    roughnessFactor=material.roughness,
                    baseColorTexture=None if texture is None else lib.TextureInfo(index=texture),
                ),
                emissiveFactor=material.emission.tolist(),
                alphaMode="BLEND" if _is_transparent(material) else "OPAQUE",
                alphaCutoff=None,
            )
            self._materials[key] = _append(self.made.materials, made)
        return self._materials[key]

    def _texture(self, image: np.ndarray) -> int:
        """Return the index of the texture of an image; equal ones are written once."""
        stream, lib = io.BytesIO(), self.lib
        require("PIL.Image", "export").fromarray(image).save(stream, "PNG")
        png = stream.getvalue()
        if png not in self._images:
            source = lib.Image(bufferView=self._view(png), mimeType="image/png")
            index = _append(self.made.images, source)
            self._images[png] = _append(self.made.textures, lib.Texture(source=index))
        return self._images[png]


def _is_transparent(material: Material) -> bool:
    image = material.image
    pictured = image is not None and image.shape[2] == 4 and image[..., 3].min() < 255
    return bool(material.rgba[3] < 1 or pictured)


def _append(items: list, item: Any) -> int:
    """Append an item to a list; return its index."""
    items.append(item)
    return len(items) - 1
