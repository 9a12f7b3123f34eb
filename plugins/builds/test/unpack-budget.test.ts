import { test } from 'tap'
import type { TarMeter } from '../context/tar-meter.js'
import { UnpackBudget } from '../registry/client/unpack-budget.js'

const layer = (bytes: number, inodes: number, fault?: TarMeter['fault']): TarMeter =>
  ({ unpacked: { bytes, inodes }, fault }) as TarMeter

test('what the layers of an image take on a disk is added up, and the first fault of them told', async t => {
  const budget = new UnpackBudget(100)
  t.same(budget.unpacked, { bytes: 0, inodes: 0, fault: undefined })
  budget.takeLayer(layer(5, 2))
  budget.takeLayer(layer(7, 3, 'first' as TarMeter['fault']))
  budget.takeLayer(layer(1, 1, 'second' as TarMeter['fault']))
  t.same(budget.unpacked, { bytes: 13, inodes: 6, fault: 'first' })
})

test('all layers together have one limit, as they come and unpacked', async t => {
  const budget = new UnpackBudget(100)
  t.same([budget.takePacked(60), budget.takePacked(40), budget.takePacked(1)], [true, true, false])
  t.same([budget.takeUnpacked(100), budget.takeUnpacked(1)], [true, false])
})
