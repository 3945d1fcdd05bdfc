"""Interactive visualization: cameras, picking under a pixel, perturbation with a mouse.

MuJoCo's abstract visualization (`mjv_` functions) without a window, a scene or state: pure
functions of model, data, camera and mouse. Names are MuJoCo's without the prefix. `Viewer` and
`record` show worlds in a browser; they need the extra `view`. `export_motion` writes a motion for
other programs; it needs the extra `export`.
"""

from jaxsim.view.browser.page import record as record
from jaxsim.view.browser.viewer import Viewer as Viewer
from jaxsim.view.camera import Camera as Camera
from jaxsim.view.camera import CameraType as CameraType
from jaxsim.view.camera import default_free_camera as default_free_camera
from jaxsim.view.export.formats import Exported as Exported
from jaxsim.view.export.formats import export_motion as export_motion
from jaxsim.view.frame import CameraFrame as CameraFrame
from jaxsim.view.frame import Frustum as Frustum
from jaxsim.view.frame import camera_frame as camera_frame
from jaxsim.view.frame import camera_frustum as camera_frustum
from jaxsim.view.frame import pixel_ray as pixel_ray
from jaxsim.view.mouse import Mouse as Mouse
from jaxsim.view.mouse import align_to_camera as align_to_camera
from jaxsim.view.mouse import move_camera as move_camera
from jaxsim.view.perturb import PertBit as PertBit
from jaxsim.view.perturb import Perturb as Perturb
from jaxsim.view.perturb import apply_perturb_force as apply_perturb_force
from jaxsim.view.perturb import apply_perturb_pose as apply_perturb_pose
from jaxsim.view.perturb import init_perturb as init_perturb
from jaxsim.view.perturb import move_perturb as move_perturb
from jaxsim.view.picking import Selection as Selection
from jaxsim.view.picking import select as select
from jaxsim.view.picture.appearance import Look as Look
from jaxsim.view.picture.output import camera_images as camera_images
from jaxsim.view.picture.render import Picture as Picture
