import { join } from 'node:path'
import { test } from 'tap'
import { API } from 'typescript/unstable/sync'
import { equivalents } from '../../scripts/mutants/left-out.js'
import { type Mutant, mutantsOf } from '../../scripts/mutants/mutations.js'

const root = join(import.meta.dirname, '../..')

test('every defect that is left out because nobody could see it is one defect that would be tried', async t => {
  const api = new API({ cwd: root })
  t.teardown(() => api.close())
  const project = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects()[0]
  const mutantsIn = (file: string): Mutant[] => {
    const source = project?.program.getSourceFile(join(root, file))
    return source === undefined ? [] : mutantsOf(file, source, source.text)
  }
  const tried = new Map(
    [...new Set(equivalents.map(({ file }) => file))].map(file => [file, mutantsIn(file)])
  )
  for (const { file, text, change } of equivalents)
    t.equal(
      tried.get(file)?.filter(one => one.text === text && one.change === change).length,
      1,
      `${file}: ${change}`
    )
})
