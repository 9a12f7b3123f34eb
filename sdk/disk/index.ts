/** Writing much to a disk of the machine, and leaving room on it for what else is there. */
export { ShortDisk, whileRoom } from './disk-floor.js'
