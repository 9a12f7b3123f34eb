import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [
    404,
    'E_FILE_MOUNT_NOT_FOUND',
    'the file mount {fileMountId} does not exist in this application'
  ],
  applicationGone: [404, 'E_FILE_MOUNT_APPLICATION_GONE', 'the application {applicationId} does not exist'],
  badMode: [
    400,
    'E_FILE_MOUNT_MODE',
    'file_mode: {mode} is no mode of a file',
    { field: 'file_mode', remedy: 'write three octal digits, such as 0644; 0777 is the highest' }
  ],
  tooLong: [
    400,
    'E_FILE_MOUNT_TOO_LONG',
    'content has {bytes} bytes; at most {limit} are allowed',
    { field: 'content', remedy: 'put what is that large into the image, or into a volume' }
  ],
  tooMuch: [
    409,
    'E_FILE_MOUNT_TOO_MUCH',
    'the files of the application would have {bytes} bytes together; at most {limit} are allowed',
    { field: 'content', remedy: 'put what is that large into the image, or into a volume' }
  ],
  staysSecret: [
    400,
    'E_FILE_MOUNT_STAYS_SECRET',
    'is_secret: the content at {path} is secret',
    { field: 'is_secret', remedy: 'send it again to make it readable' }
  ],
  tooMany: [
    409,
    'E_FILE_MOUNT_LIMIT',
    'the application has {limit} file mounts already',
    'delete one that is not used any more'
  ],
  unreadable: [
    500,
    'E_FILE_MOUNT_UNREADABLE',
    'the stored content of {path} cannot be decrypted',
    'set it again, or restore the key it was encrypted with'
  ]
})
