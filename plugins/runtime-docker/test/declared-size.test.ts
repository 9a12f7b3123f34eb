import type Docker from 'dockerode'
import { test } from 'tap'
import { declaredSize } from '../declared-size.js'

const config = (parts: object) => parts as Docker.ImageInspectInfo['Config']

test('an image is measured with its shell, which each step upon it repeats', async t => {
  t.equal(declaredSize(config({})).shellBytes, 0)
  t.equal(declaredSize(config({ Shell: null })).shellBytes, 0)
  const written = { Shell: ['/bin/bash', '-c'], Labels: { a: 'é' } }
  const { shellBytes, labelBytes, bytes } = declaredSize(config(written))
  t.equal(shellBytes, '/bin/bash -c'.length)
  t.ok(bytes > shellBytes + labelBytes, 'it is part of the whole')
})
