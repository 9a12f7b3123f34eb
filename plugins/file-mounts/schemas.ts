import {
  described,
  maybe,
  named,
  nullable,
  object,
  type Static,
  statusResponse,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

/** Of one file, in UTF-8. */
export const mostBytes = 2 ** 20
/** As JSON a character may take several. */
export const mostBodyBytes = 4 * 2 ** 20

/** `content` is left out where the caller may not see it. */
export const fileMount = named(
  'FileMount',
  object({
    id: described(uuid(), 'What the file mount is called in paths.'),
    mount_path: described(Type.String(), 'Where containers of the application see the file.'),
    content: described(maybe(Type.String()), 'What the file holds. Left out where `content_masked` is true.'),
    content_masked: described(
      Type.Boolean(),
      'Whether `content` is left out: of a secret, for every token, and where it cannot be decrypted.'
    ),
    is_secret: described(
      Type.Boolean(),
      'Whether the content is shown by `reveal` alone, and hidden in logs of deployments.'
    ),
    file_mode: described(
      Type.String(),
      'The rights of the file, in octal digits: `0644`. It belongs to root.'
    ),
    created_at: described(timestamp(), 'When it was added to the application.')
  }),
  { description: 'A file that containers of an application see and cannot change.' }
)
export type FileMountAnswer = Static<typeof fileMount>

const content = (what: string) =>
  described(
    Type.String({ maxLength: mostBytes }),
    `${what} At most 1 MiB in UTF-8, and 4 MiB in all files of the application together.`
  )
const mode = described(
  maybe(Type.String({ maxLength: 20 })),
  'The rights of the file, as three octal digits with or without a 0 in front, 0777 at most. `0644` unless given; left out of a change, they stay.'
)

export const createBody = named(
  'CreateFileMount',
  object({
    mount_path: described(
      Type.String({ minLength: 1, maxLength: 1000 }),
      'Where containers are to see the file: absolute, written plainly, of letters, digits and `_ . / -`, in a folder. Nothing in /proc, /sys and /dev, and none of the files that the container engine puts there itself. It stays.'
    ),
    content: content('What the file is to hold.'),
    is_secret: described(
      maybe(Type.Boolean()),
      'Whether only `reveal` shows the content, and logs of deployments hide it. False unless given.'
    ),
    file_mode: mode
  }),
  {
    description: 'A file for the containers of an application.',
    examples: [
      { mount_path: '/etc/app/settings.json', content: '{ "theme": "dark" }' },
      { mount_path: '/etc/app/key.pem', content: '-----BEGIN …', is_secret: true, file_mode: '0600' }
    ]
  }
)
export type CreateBody = Static<typeof createBody>

export const updateBody = named(
  'UpdateFileMount',
  object({
    content: maybe(nullable(content('What the file is to hold; left out or null, it stays.'))),
    is_secret: described(
      maybe(Type.Boolean()),
      'Left out, it stays. A secret becomes readable only together with its `content`.'
    ),
    file_mode: mode
  }),
  {
    description: 'What is to change of a file mount; what is left out stays.',
    examples: [{ content: '{ "theme": "light" }' }]
  }
)
export type UpdateBody = Static<typeof updateBody>

export const deletedAnswer = statusResponse
export const revealAnswer = named(
  'RevealedFileMount',
  object({ content: described(Type.String(), 'What the file holds, in clear.') }),
  { description: 'What a file holds.' }
)
