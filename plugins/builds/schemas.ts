import { described, named, nullable, object, type Static, Type, timestamp } from 'busbar/sdk'

const bytes = Type.Integer({ minimum: 0 })

export const cacheAnswer = named(
  'BuildCache',
  object({
    build_cache_bytes: described(
      bytes,
      'Bytes of steps of earlier builds that no image and no container needs, and of the build volume of buildpacks.'
    ),
    launch_cache_bytes: described(bytes, 'Bytes of the launch volume of buildpacks.'),
    total_bytes: described(bytes, 'Both together, in bytes.')
  }),
  { description: 'What earlier builds of an application have left for the next one.' }
)
export type CacheAnswer = Static<typeof cacheAnswer>

export const builderAnswer = named(
  'Builder',
  object({
    build_type: described(Type.String(), 'What an application has as its `build_type` to be built by it.'),
    plugin: described(Type.String(), 'The id of the plugin that it is of.'),
    available: described(Type.Boolean(), 'Whether it can be used on this machine now.'),
    reason: described(
      nullable(Type.String()),
      'What is missing, and how to get it; null when it can be used.'
    )
  }),
  { description: 'What turns a repository into an image.' }
)
export type BuilderAnswer = Static<typeof builderAnswer>

export const deployKeyAnswer = named(
  'DeployKey',
  object({
    public_key: described(
      Type.String(),
      'The line to add to the repository as a deploy key, as OpenSSH writes it; to read is enough.'
    ),
    fingerprint: described(Type.String(), 'What hosts of repositories show of the key: `SHA256:…`.'),
    created_at: described(timestamp(), 'When it was made.')
  }),
  { description: 'The public part of the key by which an application reads its repository over SSH.' }
)
export type DeployKeyAnswer = Static<typeof deployKeyAnswer>

export const hostKeyAnswer = named(
  'HostKey',
  object({
    host: described(Type.String(), 'The host, with its port where that is not 22: `[git.example.com]:2222`.'),
    key: described(Type.String(), 'Its public key, as OpenSSH writes it in `known_hosts`.'),
    fingerprint: described(Type.String(), 'What to compare with what the host publishes: `SHA256:…`.'),
    recorded_at: described(timestamp(), 'When the host showed it first.')
  }),
  { description: 'The key by which an application knows the host of its repository.' }
)
export type HostKeyAnswer = Static<typeof hostKeyAnswer>
