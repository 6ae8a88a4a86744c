import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
w = jax.random.normal(key, (512, 512))


@jax.jit
def step(w, x):
    return w - 0.01 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)


for i in range(10):
    w = step(w, jax.random.normal(jax.random.PRNGKey(i), (256, 512)))
    print(i, round(float(jnp.abs(w).mean()), 5))
