import { openLab } from '../../deployments/test/deploy-lab.js'
import { testBuildChoices } from './build-choice-cases.js'

testBuildChoices(
  'the classic builder',
  async t => {
    const lab = await openLab()
    t.teardown(async () => await lab.close())
    return lab
  },
  { isClassic: true }
)
