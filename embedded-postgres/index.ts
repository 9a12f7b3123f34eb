/**
 * The PostgreSQL that npm installed, run as a child of the platform when no DATABASE_URL names another.
 * It knows nothing of the platform but its log.
 */
export { startEmbedded, stopEmbedded, type Embedded } from './server.js'
export { isAlive } from './owner.js'
