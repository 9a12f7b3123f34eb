// A small web application without dependencies: one page, one health check, a clean end.
import { createServer } from 'node:http'
import { hostname } from 'node:os'

const version = '1'
const port = Number(process.env.PORT ?? 3000)

const page = `<!doctype html>
<html lang="en">
  <meta charset="utf-8">
  <title>Hello</title>
  <h1>Hello from version ${version}</h1>
  <p>Served by ${hostname()}.</p>
</html>
`

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

server.listen(port, () => console.log(`version ${version} listens on ${port}`))

// Requests that are being answered finish; idle connections are closed at once.
process.on('SIGTERM', () => {
  console.log('stopping')
  server.close(() => process.exit(0))
  server.closeIdleConnections()
})
