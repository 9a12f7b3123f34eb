// A live application without dependencies: a page whose WebSocket echoes what is typed.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { opcodes, readFrames, writeFrame } from './frames.js'

const version = '1'
const port = Number(process.env.PORT ?? 3000)
const handshakeKey = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

const page = `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>Live</title>
  <h1>Echo, version ${version}</h1>
  <input id="text" placeholder="type and press Enter" autofocus>
  <pre id="log"></pre>
  <script>
    const socket = new WebSocket(location.href.replace(/^http/, 'ws') + 'echo')
    socket.onmessage = event => { log.textContent += event.data + '\\n' }
    text.onchange = () => { socket.send(text.value); text.value = '' }
  </script>
</html>
`

const sockets = new Set()

const server = createServer((request, response) => {
  if (request.url === '/healthz') {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ healthy: true, version }))
  } else if (request.url === '/') {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
  } else {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\n')
  }
})

server.on('upgrade', (request, socket, head) => {
  const key = request.headers['sec-websocket-key']
  if (request.url !== '/echo' || key === undefined) {
    socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    return
  }
  const accept = createHash('sha1')
    .update(key + handshakeKey)
    .digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`
  )
  echo(socket, head)
})

function echo(socket, head) {
  sockets.add(socket)
  socket.on('close', () => sockets.delete(socket))
  socket.on('error', () => socket.destroy())
  socket.write(writeFrame(opcodes.text, Buffer.from(`version ${version}`)))
  let waiting = Buffer.alloc(0)
  const read = chunk => {
    const { frames, rest, isBroken } = readFrames(Buffer.concat([waiting, chunk]))
    waiting = rest
    for (const { opcode, payload } of frames) {
      if (opcode === opcodes.text) socket.write(writeFrame(opcodes.text, payload))
      if (opcode === opcodes.ping) socket.write(writeFrame(opcodes.pong, payload))
      if (opcode === opcodes.close) socket.end(writeFrame(opcodes.close, payload))
    }
    if (isBroken) socket.destroy()
  }
  read(head)
  socket.on('data', read)
}

server.listen(port, () => console.log(`version ${version} listens on ${port}`))

// Sockets are told "going away" (1001), so that a client knows to come back.
process.on('SIGTERM', () => {
  console.log('stopping')
  for (const socket of sockets) socket.end(writeFrame(opcodes.close, Buffer.from([0x03, 0xe9])))
  server.close(() => process.exit(0))
  server.closeIdleConnections()
})
