import { engineKinds } from './engine-lab.js'
import { testSshMounts } from './engine-ssh-cases.js'

testSshMounts('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
