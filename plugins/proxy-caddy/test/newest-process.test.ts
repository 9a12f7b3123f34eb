import { useNewestCaddy } from './newest-caddy.js'

/* What the other files ask of the machine's Caddy, of the newest one: part of it, and another part in a file beside this. */

await useNewestCaddy()
await import('./switches.test.js')
await import('./whole-again.test.js')
await import('./tls.test.js')
await import('./outside.test.js')
await import('./handlers.test.js')
