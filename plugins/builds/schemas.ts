import { named, nullable, object, type Static, Type, timestamp } from 'busbar/sdk'

const bytes = Type.Integer({ minimum: 0 })

export const cacheAnswer = named(
  'BuildCache',
  object({ build_cache_bytes: bytes, launch_cache_bytes: bytes, total_bytes: bytes })
)
export type CacheAnswer = Static<typeof cacheAnswer>

export const builderAnswer = named(
  'Builder',
  object({
    build_type: Type.String(),
    plugin: Type.String(),
    available: Type.Boolean(),
    reason: nullable(Type.String())
  })
)
export type BuilderAnswer = Static<typeof builderAnswer>

export const deployKeyAnswer = named(
  'DeployKey',
  object({
    public_key: Type.String(),
    fingerprint: Type.String(),
    created_at: timestamp()
  })
)
export type DeployKeyAnswer = Static<typeof deployKeyAnswer>

export const hostKeyAnswer = named(
  'HostKey',
  object({
    host: Type.String(),
    key: Type.String(),
    fingerprint: Type.String(),
    recorded_at: timestamp()
  })
)
export type HostKeyAnswer = Static<typeof hostKeyAnswer>
