import { request } from 'node:http'

/** Asks on a connection of its own and reads the answer to its end; the status, or 0 when nobody answers. */
export async function visit(port: number, host: string, path = '/'): Promise<number> {
  return await new Promise<number>(resolve => {
    const headers = { Host: host }
    const outgoing = request({ host: '127.0.0.1', port, path, agent: false, headers }, answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    })
    outgoing.on('error', () => resolve(0))
    outgoing.end()
  })
}
