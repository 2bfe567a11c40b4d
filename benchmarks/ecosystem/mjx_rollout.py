"""A batch of simulated pendulums with MuJoCo MJX."""

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx
from phases import phase, report, steps

phase("start")

XML = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 2">
      <joint type="hinge" axis="0 1 0" damping="0.02"/>
      <geom type="capsule" fromto="0 0 0 0.6 0 0" size="0.05"/>
      <body pos="0.6 0 0">
        <joint name="second" type="hinge" axis="0 1 0" damping="0.02"/>
        <geom type="capsule" fromto="0 0 0 0.6 0 0" size="0.05"/>
      </body>
    </body>
    <body pos="0.3 0.5 1"><freejoint/><geom type="sphere" size="0.1"/></body>
  </worldbody>
  <actuator><motor joint="second" gear="1"/></actuator>
</mujoco>
"""

model = mjx.put_model(mujoco.MjModel.from_xml_string(XML))
data = mjx.make_data(model)
phase("set-up")


@jax.jit
def rollout(controls):
    def one(control):
        def advance(data, _):
            data = mjx.step(model, data.replace(ctrl=control))
            return data, data.qpos

        return jax.lax.scan(advance, data, length=50)[1]

    return jax.vmap(one)(controls)


controls = jnp.linspace(-1.0, 1.0, 64)[:, None]
lowered = rollout.lower(controls)
phase("trace")
lowered.compile()
phase("compile")
positions = rollout(controls)
jax.block_until_ready(positions)
phase("first step")
positions = steps(lambda _: rollout(controls), None, 5, jax.block_until_ready)
report(mean=positions.mean(), last=positions[-1, -1, 1])
