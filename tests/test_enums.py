"""Our enumerations have MuJoCo's names and values."""

import mujoco
import pytest

from jaxsim import enums

PAIRS = {
    "JointType": "mjtJoint mjJNT_",
    "GeomType": "mjtGeom mjGEOM_",
    "IntegratorType": "mjtIntegrator mjINT_",
    "ConeType": "mjtCone mjCONE_",
    "JacobianType": "mjtJacobian mjJAC_",
    "SolverType": "mjtSolver mjSOL_",
    "EqType": "mjtEq mjEQ_",
    "TendonType": "mjtTendon mjTENDON_",
    "WrapType": "mjtWrap mjWRAP_",
    "TrnType": "mjtTrn mjTRN_",
    "DynType": "mjtDyn mjDYN_",
    "GainType": "mjtGain mjGAIN_",
    "BiasType": "mjtBias mjBIAS_",
    "ConstraintType": "mjtConstraint mjCNSTR_",
    "ConstraintState": "mjtConstraintState mjCNSTRSTATE_",
    "CtrlChart": "mjtCtrlChart mjCHART_",
    "CtrlInput": "mjtCtrlInput mjINPUT_",
    "ObjType": "mjtObj mjOBJ_",
    "SensorType": "mjtSensor mjSENS_",
    "Stage": "mjtStage mjSTAGE_",
    "State": "mjtState mjSTATE_",
    "DataType": "mjtDataType mjDATATYPE_",
    "ConDataField": "mjtConDataField mjCONDATA_",
    "RayDataField": "mjtRayDataField mjRAYDATA_",
    "WarningType": "mjtWarning mjWARN_",
    "CamLight": "mjtCamLight mjCAMLIGHT_",
    "LightType": "mjtLightType mjLIGHT_",
    "Projection": "mjtProjection mjPROJ_",
    "SameFrame": "mjtSameFrame mjSAMEFRAME_",
    "SleepPolicy": "mjtSleepPolicy mjSLEEP_",
    "SleepState": "mjtSleepState mjS_",
    "DisableBit": "mjtDisableBit mjDSBL_",
    "EnableBit": "mjtEnableBit mjENBL_",
}


@pytest.mark.parametrize("name", PAIRS)
def test_members_are_mujocos(name):
    theirs, prefix = PAIRS[name].split()
    for member in getattr(enums, name):
        assert int(getattr(getattr(mujoco, theirs), prefix + member.name)) == member.value


def test_every_enumeration_is_compared():
    ours = {
        n for n, v in vars(enums).items() if isinstance(v, type) and v.__module__ == enums.__name__
    }
    assert ours == set(PAIRS) | set(NUMBERS)


# Numbers that have no name in MuJoCo: an element with a word for them, and the field they are in.
NUMBERS = {
    "Reduce": ('<sensor><contact geom1="g" reduce="{}"/></sensor>', "sensor_intprm"),
    "Interpolation": (
        '<actuator><motor joint="j" delay=".01" nsample="2" interp="{}"/></actuator>',
        "actuator_history",
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_what_mujoco_makes_of_the_words(name):
    element, field = NUMBERS[name]
    for member in getattr(enums, name):
        model = mujoco.MjModel.from_xml_string(
            '<mujoco><worldbody><body><joint name="j"/><geom name="g" size=".1"/></body>'
            f"</worldbody>{element.format(member.name.lower())}</mujoco>"
        )
        assert getattr(model, field)[0, 1] == member


@pytest.mark.parametrize(
    ("field", "element"),
    [
        (enums.ConDataField, '<contact geom1="g" data="{}"/>'),
        (enums.RayDataField, '<rangefinder site="s" data="{}"/>'),
    ],
)
def test_widths_are_those_of_sensors(field, element):
    for member in field:
        model = mujoco.MjModel.from_xml_string(
            '<mujoco><worldbody><geom name="g" size=".1"/><site name="s"/></worldbody>'
            f"<sensor>{element.format(member.name.lower())}</sensor></mujoco>"
        )
        assert model.sensor_dim[0] == member.width
