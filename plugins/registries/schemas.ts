import {
  described,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  statusResponse,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

/** The password is never answered. */
export const account = named(
  'RegistryAccount',
  object({
    id: described(uuid(), 'What the account is called in paths.'),
    registry: described(
      Type.String(),
      'The host of the registry, with its port unless that is 443: `ghcr.io`.'
    ),
    username: described(Type.String(), 'The name of the account there.'),
    created_at: described(timestamp(), 'When an account of this registry was kept first.'),
    updated_at: described(timestamp(), 'When name or password were set last.')
  }),
  { description: 'An account of an image registry, without its password.' }
)
export type AccountAnswer = Static<typeof account>

/** The password may be a key file of several lines, or a token of some thousand characters. */
export const accountBody = named(
  'SetRegistryAccount',
  object({
    registry: described(
      Type.String({ minLength: 1, maxLength: 300 }),
      'The host of the registry, with its port where it needs one: `docker.io`, `ghcr.io`, `registry.example.com:5000`. What `docker login` takes is taken too; the path of an image is refused, as an account is for a whole registry.'
    ),
    username: described(
      Type.String({ minLength: 1, maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f:]+$' }),
      'The name of the account, without colon and control characters.'
    ),
    password: described(
      text({ min: 1, max: 16_384 }),
      'The password, a token, or a key file of several lines. It is kept encrypted and is in no answer.'
    )
  }),
  {
    description: 'An account of a registry.',
    examples: [{ registry: 'ghcr.io', username: 'web-shop', password: 'ghp_0123456789' }]
  }
)
export type AccountBody = Static<typeof accountBody>

export const accountParams = {
  registryAccountId: described(uuid(), 'The `id` of the account, as this list of accounts has it.')
}
export const deletedAnswer = statusResponse
export const trialAnswer = named(
  'RegistryAccountTrial',
  object({
    status: described(
      oneOf(['ok', 'refused', 'unreachable']),
      '`ok`: the registry lets the account in. `refused`: name or password are wrong. `unreachable`: the registry did not say, as it is away, is no registry, or must not be asked.'
    ),
    reason: described(
      nullable(Type.String()),
      'What the registry said, or what `ok` does not prove here; null when there is nothing to say.'
    )
  }),
  { description: 'What a registry says of an account now.' }
)
