/** What the channels carry, of one process. */
import { requireEngine } from '../../lab/engine.js'
import { channelClaims } from './channels.js'
import { oneProcess, testClaims } from './claims.js'
import { databaseClaims } from './database-channels.js'

testClaims([...channelClaims, ...databaseClaims], oneProcess, { usesEngine: true }, requireEngine)
