import { engineKinds } from './engine-lab.js'
import { testRestartDuringHandOver } from './engine-restart-cases.js'

testRestartDuringHandOver(
  'the Docker Engine of this machine',
  engineKinds['the Docker Engine of this machine']
)
