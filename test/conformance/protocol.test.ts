/** Frames and refusals, of one process and of two on one database. */
import { oneProcess, testClaims, twoProcesses } from './claims.js'
import { protocolClaims } from './protocol.js'

testClaims(protocolClaims, [...oneProcess, ...twoProcesses])
