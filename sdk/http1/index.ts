/** For plugins that speak HTTP/1.1 with strangers: what a server needs whom they reach, and a request that they answer. */

export * from './connection-caps.js'
export * from './interim-answers.js'
export * from './request.js'
export { inTurn, isAnswering } from './request-turns.js'
export * from './stalled-readers.js'
export * from './stop-parsing.js'
export { tinyChunks } from './tiny-chunks.js'
