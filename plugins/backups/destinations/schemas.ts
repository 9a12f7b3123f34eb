import {
  described,
  maybe,
  named,
  nullable,
  object,
  type Static,
  Type,
  text,
  timestamp,
  uuid
} from 'busbar/sdk'

export const destination = named(
  'BackupDestination',
  object({
    id: described(uuid(), 'What the destination is called in paths.'),
    project_id: described(uuid(), 'The project that it is of.'),
    name: described(Type.String(), 'What people call it.'),
    provider: described(
      Type.String(),
      'What it is: `s3`, `r2`, `b2`, `wasabi`, `minio`, `other` (what speaks the protocol of S3), `local` (a folder of this machine), or what a plugin adds.'
    ),
    endpoint: described(Type.String(), "The host of the store, with its port; empty: the provider's own."),
    region: described(Type.String(), 'The region of the bucket.'),
    bucket: described(Type.String(), 'The bucket; empty where the provider has none.'),
    prefix: described(Type.String(), 'What the keys of files begin with.'),
    use_ssl: described(Type.Boolean(), 'Whether it is reached over TLS.'),
    created_at: described(timestamp(), 'When it was made.'),
    updated_at: described(timestamp(), 'When it was changed last.')
  }),
  { description: 'Where backups of a project are kept. The keys are in no answer.' }
)
export type DestinationAnswer = Static<typeof destination>

const field = (words: string, max: number) => described(maybe(text({ max })), words)

const fields = {
  name: field('What people call it, unique in the project; required when it is made.', 100),
  provider: field('`s3` unless given; `r2`, `b2`, `wasabi`, `minio`, `other` or `local`.', 40),
  endpoint: field("The host of the store, with its port where it has one; empty: the provider's own.", 300),
  region: field('The region of the bucket; `us-east-1` unless given.', 100),
  bucket: field('The bucket, which must be there; required where the provider has buckets.', 255),
  prefix: field('What the keys of files begin with; slashes at its ends are left out.', 500),
  use_ssl: described(maybe(nullable(Type.Boolean())), 'Whether it is reached over TLS; it is unless given.'),
  access_key: field('The id of the access key. It is kept encrypted and is in no answer.', 500),
  secret_key: field('The secret of the access key. It is kept encrypted and is in no answer.', 2000)
}

const examples = [
  {
    name: 'Frankfurt',
    provider: 's3',
    region: 'eu-central-1',
    bucket: 'shop-backups',
    prefix: 'busbar',
    access_key: 'AKIDEXAMPLE',
    secret_key: 'wJalrXUtnFEMIK7MDENG'
  }
]

/** `id` is taken and ignored: clients have one form, and send the same to try a destination and to save it. */
export const destinationBody = named(
  'SetBackupDestination',
  object({
    ...fields,
    id: field('Taken and ignored, for clients that send what they have tried.', 36)
  }),
  {
    description:
      'A destination. When it is changed, what is left out stays as it is, and an empty key too. Keys come both together.',
    examples
  }
)
export type DestinationBody = Static<typeof destinationBody>

export const trialBody = named(
  'TryBackupDestination',
  object({
    ...fields,
    id: field(
      'A destination whose stored keys are used where none are given; it must be at the same host.',
      36
    )
  }),
  { description: 'A destination that is not saved.', examples }
)
export type TrialBody = Static<typeof trialBody>

export const trialAnswer = named(
  'BackupDestinationTrial',
  object({
    ok: described(Type.Boolean(), 'Whether backups may be kept there now.'),
    error: described(maybe(Type.String()), 'Why not; left out where it works.')
  }),
  { description: 'What a destination says now.' }
)
export type TrialAnswer = Static<typeof trialAnswer>

export const destinationParams = {
  destId: described(uuid(), 'The `id` of the destination.')
}
