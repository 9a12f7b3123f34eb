/** For plugins that speak HTTP/1.1 with untrusted peers: what a public server needs, and what a request to one needs. */

export * from './byte-turns.js'
export * from './connection-caps.js'
export { type AddressTest, addressesIn, type Origin, originOf } from './forwarded-for.js'
export * from './forwarding/index.js'
export * from './interim-answers.js'
export * from './pipe-in-turns.js'
export * from './request.js'
export { countWaiting, inTurn, isAnswering } from './request-turns.js'
export * from './stalled-readers.js'
export * from './stop-parsing.js'
export { tinyChunks } from './tiny-chunks.js'
