import { inApplication } from 'busbar/api/applications'
import { terminalProblems } from 'busbar/api/containers'
import { allow, type RouteDeclarer } from 'busbar/sdk'
import { problems } from './problems.js'
import { createSession, terminalSession } from './schemas.js'
import type { Terminal } from './terminal.js'

export function routes(route: RouteDeclarer<Terminal>) {
  route({
    method: 'POST',
    url: '/api/projects/:projectId/applications/:applicationId/terminal',
    group: 'Terminal Access',
    operationId: 'CreateTerminalSession',
    summary: 'Create Terminal Session',
    description:
      'Makes a session for a terminal in the container that serves the application. It is opened with the WebSocket `/api/ws/terminal/{sessionId}` within a minute, by the same sign-in. The container has to run and to have `sh`. Start and end of a session are in the audit log; what is typed and written is not.',
    problems: [
      problems.applicationGone,
      problems.noContainer,
      problems.notRunning,
      problems.limitReached,
      { ...problems.noShell, message: 'the container has no shell, or not the one that was asked for' },
      problems.notStarted,
      ...terminalProblems
    ],
    idempotent: true,
    access: allow.session({ project: inApplication }),
    schema: { body: createSession, response: { 201: terminalSession } },
    audit: {
      action: 'terminal.session.started',
      resource: 'application',
      id: { param: 'applicationId' },
      keeps: ['session_id', 'shell']
    },
    handler: async ({ project, params, body, caller, ip, signal }, { sessions }) =>
      await sessions.create(
        { projectId: project, applicationId: params.applicationId, shell: body.shell },
        { caller, ip, signal }
      )
  })
}
