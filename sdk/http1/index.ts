/** For plugins that listen on a port of their own: what a server of HTTP/1.1 needs whom strangers reach. */

export * from './connection-caps.js'
export * from './request.js'
export { inTurn, isAnswering } from './request-turns.js'
export * from './stalled-readers.js'
export * from './stop-parsing.js'
export { tinyChunks } from './tiny-chunks.js'
