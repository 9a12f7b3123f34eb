import { testCrashDuringBuild } from './engine-crash-cases.js'
import { engineKinds } from './engine-lab.js'

testCrashDuringBuild('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'], {
  always: ['a step of the build'],
  others: 1
})
