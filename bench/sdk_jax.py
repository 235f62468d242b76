# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A training loop of JAX. XLA makes CUDA graphs of the step, and they copy memory (bench/sdk_device jax)."""
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax
import jax.numpy as jnp
import optax

STEPS = 200


def loss_of(weights, batch):
    for layer in weights:
        batch = jax.nn.gelu(jnp.dot(batch, layer))
    return jnp.mean(jnp.square(batch - 1))


def main():
    key = jax.random.PRNGKey(0)
    weights = [jax.random.normal(part, (1024, 1024)) / 32 for part in jax.random.split(key, 8)]
    batch = jax.random.normal(key, (256, 1024))
    optimizer = optax.adamw(1e-3)
    state = optimizer.init(weights)

    @jax.jit
    def update(weights, state):
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
        changes, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, changes), state, loss

    for step in range(STEPS):
        weights, state, loss = update(weights, state)
        if step % 10 == 9:
            jax.block_until_ready(loss)
    print(f"loss {float(loss):.3f}")


main()
