import { described, maybe, named, object, type Static, Type, timestamp, uuid } from 'busbar/sdk'

export const volume = named(
  'ApplicationVolume',
  object({
    id: described(uuid(), 'What the volume is called in paths.'),
    name: described(Type.String(), 'What it is called: letters, digits and hyphens.'),
    mount_path: described(Type.String(), 'Where containers of the application have it.'),
    size_bytes: described(
      maybe(Type.Integer()),
      'What its files took when they were measured last, a minute ago or less where the engine answers; 0 before the first deploy has made it. Left out while it has never been measured.'
    ),
    created_at: described(timestamp(), 'When it was added to the application.')
  }),
  { description: 'A folder of an application whose files outlive its containers.' }
)
export type VolumeAnswer = Static<typeof volume>

export const createBody = named(
  'CreateApplicationVolume',
  object({
    name: described(
      Type.String({ minLength: 1, maxLength: 200 }),
      'What it is to be called. It is written in lower case, with a hyphen for each run of other characters than letters and digits, and has 40 characters then at most.'
    ),
    mount_path: described(
      Type.String({ minLength: 1, maxLength: 1000 }),
      'Where containers are to have it: absolute, written plainly, of letters, digits and `_ . / -`. Not `/` and folders without which no container works, and nothing in /proc, /sys and /dev.'
    )
  }),
  {
    description: 'A folder whose files are to outlive the containers of the application.',
    examples: [{ name: 'uploads', mount_path: '/app/uploads' }]
  }
)
export type CreateBody = Static<typeof createBody>

export const deleteQuery = object({
  delete_data: described(
    maybe(Type.String({ examples: ['true'] })),
    '`true` removes its files too, for good. Otherwise they stay until the application is deleted, and a volume of the same name has them again.'
  ),
  delete_backups: described(
    maybe(Type.String({ examples: ['true'] })),
    '`true`: its backups are erased too. They are kept unless given.'
  )
})

export const deletedAnswer = named(
  'DeletedApplicationVolume',
  object({
    status: described(Type.String(), 'What has been done: `deleted`.'),
    warning: described(
      maybe(Type.String()),
      'That a container still has it, until when, and what becomes of its files; that it has backups, and what becomes of these. Left out where neither is so.'
    )
  }),
  { description: 'That the application has the volume no more.' }
)
export type DeletedAnswer = Static<typeof deletedAnswer>
