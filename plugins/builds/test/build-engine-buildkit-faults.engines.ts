import { testCrashDuringBuild } from './engine-crash-cases.js'
import { testEngineOnFullDisk } from './engine-full-disk-cases.js'
import { testEngineImage } from './engine-image-cases.js'
import { testKilledEngine } from './engine-killed-cases.js'
import { engineKinds } from './engine-lab.js'
import { testRestartDuringHandOver } from './engine-restart-cases.js'

testKilledEngine('BuildKit', engineKinds.BuildKit)
testCrashDuringBuild('BuildKit', engineKinds.BuildKit)
testEngineOnFullDisk('BuildKit', engineKinds.BuildKit)
testRestartDuringHandOver('BuildKit', engineKinds.BuildKit)
testEngineImage('BuildKit', engineKinds.BuildKit)
