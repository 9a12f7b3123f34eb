/** Who gets a socket, in one process and in two on one database. */
import { admissionClaims } from './admission.js'
import { oneProcess, testClaims, twoProcesses } from './claims.js'

testClaims(admissionClaims, [...oneProcess, ...twoProcesses])
