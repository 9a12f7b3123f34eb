/** Who may hear what, in one process and in two on one database. */
import { accessClaims } from './access.js'
import { oneProcess, testClaims, twoProcesses } from './claims.js'

testClaims(accessClaims, [...oneProcess, ...twoProcesses])
