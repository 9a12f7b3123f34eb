/** Clients that do what they should not, of a process that is told by another one. */
import { testClaims, twoProcesses } from './claims.js'
import { faultClaims } from './faults.js'

testClaims(faultClaims, twoProcesses.slice(0, 1))
