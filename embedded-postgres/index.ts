/**
 * The PostgreSQL that npm installed, run as a child of the platform when no DATABASE_URL names another.
 * It knows nothing of the platform but its log.
 */

export { isAlive } from './owner.js'
export { startEmbedded, stopEmbedded } from './server.js'
