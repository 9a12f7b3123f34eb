import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Test } from 'tap'

const interim = 'HTTP/1.1 102 Processing\r\n\r\n'
/** Node gives such a request up without a word. */
export const unaskedUpgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'

/** A server that sends `count` interim answers to whatever it is asked, and `end` after them. Answers its port. */
export async function interimServer(t: Test, count: number, end = ''): Promise<number> {
  return await serve(t, write => {
    write(interim.repeat(count) + end)
  })
}

/** A server that sends interim answers for as long as the client reads them. Returns its port. */
export async function endlessInterimServer(t: Test): Promise<number> {
  const many = interim.repeat(2_000)
  return await serve(t, write => {
    const more = (): void => {
      write(many, more)
    }
    more()
  })
}

async function serve(
  t: Test,
  answer: (write: (text: string, sent?: () => void) => void) => void
): Promise<number> {
  const server = createServer(socket => {
    t.teardown(() => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.once('data', () =>
      answer((text, sent) => {
        socket.write(text, error => {
          if (error == null) sent?.()
        })
      })
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
