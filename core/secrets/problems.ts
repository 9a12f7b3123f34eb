import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  unknownKey: [
    500,
    'E_SECRETS_UNKNOWN_KEY',
    'the secret in {place} was sealed with key {key}, which this installation does not have',
    'add {key} to ENCRYPTION_KEYS, or restore the keys.json it came from'
  ],
  cannotOpen: [
    500,
    'E_SECRETS_CANNOT_OPEN',
    'the secret in {place} does not open: it was sealed for another place, with another key named {key}, or was changed; enter it again'
  ],
  malformed: [500, 'E_SECRETS_MALFORMED', 'the value in {place} is not a sealed secret; enter it again'],
  badPlace: [500, 'E_SECRETS_PLACE', 'plugin, table and column of a secret must be names, not {place}'],
  badKey: [
    500,
    'E_SECRETS_KEY',
    '{source} must hold 32 bytes as 64 hexadecimal digits (openssl rand -hex 32)'
  ],
  badKeyId: [
    500,
    'E_SECRETS_KEY_ID',
    '{source}: a key is written <id>:<64 hexadecimal digits> with an id of 1 to 32 letters, digits, - and _'
  ],
  duplicateKey: [
    500,
    'E_SECRETS_KEY_DUPLICATE',
    '{source} gives key {key} a second value',
    'give the new key a new id'
  ],
  unknownCurrent: [
    500,
    'E_SECRETS_KEY_CURRENT',
    'ENCRYPTION_KEY_CURRENT names key {key}, which is not among the keys: {known}'
  ],
  badFile: [
    500,
    'E_SECRETS_KEY_FILE',
    '{path} is not a key file',
    'restore it from a backup: without it nothing that was sealed opens again'
  ]
})
