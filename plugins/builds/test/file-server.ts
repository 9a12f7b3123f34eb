import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** The time of the files that it hands out. */
export const modified = new Date('1994-11-15T12:45:26Z')

const everything: RequestListener = (request, response) => {
  response.writeHead(200, { 'last-modified': modified.toUTCString() }).end(`it is ${request.url ?? ''}`)
}

/** A web server of the test's own; answers its origin. */
export async function fileServer(t: Test, answer: RequestListener = everything): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
