import { described, maybe, named, nullable, object, oneOf, type Static, Type, text } from 'busbar/sdk'
import { shells } from './shells.js'

export const createSession = named(
  'CreateTerminalSession',
  object({
    shell: described(
      maybe(nullable(text({ max: 100 }))),
      'The shell to start: `sh`, `bash`, `ash`, `zsh` or `fish`. Left out, and for anything else, it is `sh`.'
    )
  }),
  { description: 'What is to run in the terminal.', examples: [{ shell: 'bash' }, {}] }
)

export const terminalSession = named(
  'TerminalSession',
  object({
    session_id: described(
      Type.String(),
      'The session, for the path of the WebSocket `/api/ws/terminal/{sessionId}`: 32 hexadecimal digits.'
    ),
    shell: described(oneOf(shells), 'The shell that it starts.')
  }),
  {
    description:
      'A terminal session. It is there for a minute, and starts its shell when somebody attaches to it.'
  }
)
export type TerminalSession = Static<typeof terminalSession>

export const sessionParams = {
  sessionId: described(
    Type.String({ pattern: '^[0-9a-f]{32}$' }),
    'The `session_id` of a session that the caller has made, with the same sign-in.'
  )
}
