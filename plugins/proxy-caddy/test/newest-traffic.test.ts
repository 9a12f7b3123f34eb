import { useNewestCaddy } from './newest-caddy.js'

/* What the other files ask of the machine's Caddy, of the newest one: part of it, and another part in a file beside this. */

await useNewestCaddy()
await import('./driver.test.js')
await import('./hostile.test.js')
await import('./wire.test.js')
await import('./held-sockets.test.js')
