/** Clients that do what they should not. */
import { oneProcess, testClaims } from './claims.js'
import { faultClaims, outboxClaims } from './faults.js'

testClaims([...outboxClaims, ...faultClaims], oneProcess)
