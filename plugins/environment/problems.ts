import { problemTable } from 'busbar/sdk'

export const problems = problemTable({
  notFound: [404, 'E_VARIABLE_NOT_FOUND', 'variable {variableId} does not exist here'],
  ownerGone: [404, 'E_VARIABLE_OWNER_GONE', 'the project or application does not exist'],
  badKey: [
    400,
    'E_VARIABLE_KEY',
    'vars: {key} is not a name for a variable',
    { field: 'vars', remedy: 'use letters, digits and _, not starting with a digit' }
  ],
  duplicate: [400, 'E_VARIABLE_DUPLICATE', 'vars: {key} is there more than once', { field: 'vars' }],
  noValue: [
    400,
    'E_VARIABLE_NO_VALUE',
    'vars: {key} needs a value, or unchanged to keep the stored one',
    { field: 'vars' }
  ],
  notStored: [
    400,
    'E_VARIABLE_NOT_STORED',
    'vars: {key} is sent as unchanged, but no value of it is stored',
    { field: 'vars', remedy: 'send the value' }
  ],
  staysSecret: [
    400,
    'E_VARIABLE_STAYS_SECRET',
    'vars: {key} is secret',
    { field: 'vars', remedy: 'send its value again to make it readable' }
  ],
  tooLong: [
    400,
    'E_VARIABLE_TOO_LONG',
    'vars: the value of {key} has {bytes} bytes; at most {limit} are allowed',
    { field: 'vars' }
  ],
  nul: [
    400,
    'E_VARIABLE_NUL',
    'vars: the value of {key} holds a NUL character, which no environment can carry',
    { field: 'vars' }
  ],
  unreadable: [
    500,
    'E_VARIABLE_UNREADABLE',
    'the stored value of {key} cannot be decrypted',
    'set it again, or restore the key it was encrypted with'
  ]
})
