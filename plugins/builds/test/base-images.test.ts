import { test } from 'tap'
import { outsideImages } from '../builders/base-images.js'

const cases: ReadonlyArray<readonly [what: string, dockerfile: string, images: readonly string[], args?: Record<string, string>]> = [
  ['an image', 'FROM node:20\nRUN x\n', ['node:20']],
  ['lower case, a platform and a name', 'from --platform=linux/amd64 node:20 as Build\nFROM build\n', ['node:20']],
  ['stages are no images, in any case', 'FROM a AS one\nFROM b AS TWO\nCOPY --from=One /x /x\nCOPY --from=0 /x /x\nFROM two\n', ['a', 'b']],
  ['a stage named as its image', 'FROM node AS node\nFROM node\n', ['node']],
  ['nothing', 'FROM scratch\nCOPY a /\n', []],
  ['what a file is copied from', 'FROM a\nCOPY --chown=1:1 --from=registry.example.com/b:1 /x /y\n', ['a', 'registry.example.com/b:1']],
  ['what a build on top of it would copy', 'FROM a AS one\nONBUILD COPY --from=b /x /y\nonbuild copy --chown=1 --from=c /x /y\nONBUILD RUN x\nFROM one\n', ['a', 'b', 'c']],
  ['an argument with a default', 'ARG TAG=20\nFROM node:${TAG}\n', ['node:20']],
  ['an argument that the application sets', 'ARG TAG=20\nFROM node:$TAG\n', ['node:22'], { TAG: '22' }],
  ['quotes, alternatives and absence', 'ARG A="x"\nARG B\nFROM ${A}-${B:-y}:${A:+z}\n', ['x-y:z']],
  ['an argument of a stage does not count', 'FROM scratch\nARG A=secret\nFROM b${A}\n', ['b']],
  ['continued lines', 'FROM \\\n  node:20 \\\n  AS x\n', ['node:20']],
  ['a comment is none', '# FROM a\nFROM b\n', ['b']]
]

test('the images that a Dockerfile takes from outside are found', async t => {
  for (const [what, dockerfile, images, args = {}] of cases) t.same(outsideImages(dockerfile, args).map(({ name }) => name), images, what)
})
