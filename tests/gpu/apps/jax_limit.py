"""What JAX preallocates: 75 % of the memory that it is told of."""
import jax
import jax.numpy as jnp

x = jnp.ones((1000, 1000))
print("sum", float((x @ x).sum()))
stats = jax.devices()[0].memory_stats()
print("bytes_limit", stats["bytes_limit"])
