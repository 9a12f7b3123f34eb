import { createRequire, Module } from 'node:module'
import type Docker from 'dockerode'

const require = createRequire(import.meta.url)

/** Modules of dockerode and below it, by what they would load and what alone asks for them, neither of which happens here. */
const leftOut = {
  'dockerode/lib/session.js': 'builds by the BuildKit of the engine itself (gRPC)',
  'docker-modem/lib/ssh.js': 'engines by SSH'
}

/** Loads dockerode, on first use as it takes memory, and without its gRPC and its SSH client, which are most of it. */
export function loadDockerode(): typeof Docker {
  const below = createRequire(require.resolve('dockerode'))
  for (const [name, purpose] of Object.entries(leftOut)) {
    const path = below.resolve(name)
    const refuse = (): never => {
      throw new Error(`${purpose}: nothing here asks for that`)
    }
    require.cache[path] ??= Object.assign(new Module(path), { loaded: true, exports: refuse })
  }
  return require('dockerode') as typeof Docker
}
