import { testEngineAccounts } from './engine-account-cases.js'
import { engineKinds } from './engine-lab.js'

testEngineAccounts('the Docker Engine of this machine', engineKinds['the Docker Engine of this machine'])
