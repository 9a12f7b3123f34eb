import { createRequire, Module } from 'node:module'
import type Docker from 'dockerode'

const require = createRequire(import.meta.url)

function noSession(): never {
  throw new Error('builds by the BuildKit of the engine itself are asked for by nothing here')
}

/**
 * Loads dockerode, on first use as it takes memory, and without the gRPC that it would need to answer an engine that builds with
 * its own BuildKit (`version: '2'` of `buildImage`): that is a third of its memory and of its time.
 */
export function loadDockerode(): typeof Docker {
  const session = require.resolve('dockerode/lib/session.js')
  require.cache[session] ??= Object.assign(new Module(session), { loaded: true, exports: noSession })
  return require('dockerode') as typeof Docker
}
