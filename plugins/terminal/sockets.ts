import { terminalProblems } from 'busbar/api/containers'
import { allow, type SocketDeclarer } from 'busbar/sdk'
import { problems } from './problems.js'
import { sessionParams } from './schemas.js'
import type { Terminal } from './terminal.js'

export function sockets(socket: SocketDeclarer<Terminal>) {
  socket({
    url: '/api/ws/terminal/:sessionId',
    group: 'Terminal Access',
    operationId: 'HandleTerminalWebSocket',
    summary: 'Handle Terminal Web Socket',
    description:
      'The terminal of a session, in frames of JSON. The client sends `{"type": "input", "data": "…"}`, base64 or else the text itself, and `{"type": "resize", "cols": 80, "rows": 24}`, each side from 1 to 1000. The server sends `{"type": "output", "data": "…"}`, base64 of 4096 bytes at most, and at the end `{"type": "closed", "message": "session ended", "reason": "exited"}`, after which it closes with 1000. Frames that say nothing of this are ignored; one that is no JSON closes with 1007, one over 64 KiB with 1009. A socket that closes leaves the session, which goes on for a minute: whoever comes back is shown the last screen. Everything that was started in it ends with the session.',
    problems: [
      problems.notFound,
      {
        ...problems.attached,
        message: 'somebody is attached to the session, or it goes on in another process'
      },
      problems.notStarted,
      ...terminalProblems
    ],
    // Whose project it is in, its own record says.
    access: allow.session({ project: 'none' }),
    params: sessionParams,
    accept: async (request, { sessions }) => {
      await sessions.accept(request)
    },
    handler: async (duplex, request, { sessions }) => {
      await sessions.attach(duplex, request)
    }
  })
}
