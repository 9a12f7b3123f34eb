import { test } from 'tap'
import { DiskReport } from '../inventory/disk-report.js'
import { RowScanner } from '../inventory/json-rows.js'

function reportOf(answer: object) {
  const report = new DiskReport()
  const scanner = new RowScanner()
  for (const row of [...scanner.write(Buffer.from(JSON.stringify(answer))), ...scanner.end()]) report.add(row)
  return report.result()
}

const images = [
  { Id: 'sha256:a', Size: 100, SharedSize: 60, Containers: 2 },
  { Id: 'sha256:b', Size: 90, SharedSize: 60, Containers: 0 },
  { Id: 'sha256:c', Size: 30, SharedSize: -1, Containers: -1 }
]
const containers = [
  { Id: 'a', State: 'running', SizeRw: 7 },
  { Id: 'b', State: 'exited', SizeRw: 5 },
  { Id: 'c', State: 'created' }
]
const volumes = [
  { Name: 'used', UsageData: { Size: 1000, RefCount: 1 } },
  { Name: 'free', UsageData: { Size: 200, RefCount: 0 } },
  { Name: 'remote', UsageData: { Size: -1, RefCount: 0 } }
]
const cache = [
  { ID: 'x', InUse: false, Shared: false, Size: 11 },
  { ID: 'y', InUse: true, Shared: false, Size: 22 },
  { ID: 'z', InUse: false, Shared: true, Size: 33 }
]
const maps = {
  sharedBytes: new Map([
    ['sha256:a', 60],
    ['sha256:b', 60]
  ]),
  volumeBytes: new Map([
    ['used', 1000],
    ['free', 200]
  ])
}

test('what an engine lists of its disk is added up: layers once, and what nothing uses can be reclaimed', t => {
  t.same(
    reportOf({
      LayersSize: 160,
      Images: images,
      Containers: containers,
      Volumes: volumes,
      BuildCache: cache,
      BuilderSize: 0
    }),
    {
      layersBytes: 160,
      images: { count: 3, bytes: 160, reclaimableBytes: 120 },
      containers: { count: 3, bytes: 12, reclaimableBytes: 5 },
      volumes: { count: 3, bytes: 1200, reclaimableBytes: 200 },
      buildCache: { count: 3, bytes: 33, reclaimableBytes: 11 },
      ...maps
    }
  )
  t.end()
})

test('an engine that tells the sums is believed, and what it lists beside them says which image and volume', t => {
  const sum = (TotalCount: number, TotalSize: number, Reclaimable: number) => ({
    ActiveCount: 1,
    TotalCount,
    TotalSize,
    Reclaimable
  })
  t.same(
    reportOf({
      ImageUsage: { ...sum(3, 160, 90), Items: images },
      ContainerUsage: { ...sum(3, 12, 5), Items: containers },
      VolumeUsage: { ...sum(3, 1200, 200), Items: volumes },
      BuildCacheUsage: sum(0, 0, 0)
    }),
    {
      layersBytes: 160,
      images: { count: 3, bytes: 160, reclaimableBytes: 90 },
      containers: { count: 3, bytes: 12, reclaimableBytes: 5 },
      volumes: { count: 3, bytes: 1200, reclaimableBytes: 200 },
      buildCache: { count: 0, bytes: 0, reclaimableBytes: 0 },
      ...maps
    }
  )
  t.end()
})

test('an engine with nothing, or of which nothing is known, holds nothing', t => {
  const none = { count: 0, bytes: 0, reclaimableBytes: 0 }
  const nothing = {
    layersBytes: 0,
    images: none,
    containers: none,
    volumes: none,
    buildCache: none,
    sharedBytes: new Map(),
    volumeBytes: new Map()
  }
  t.same(reportOf({ LayersSize: 0, Images: null, Containers: [], Volumes: null, BuildCache: null }), nothing)
  t.same(reportOf({ LayersSize: 'many', Images: [null, 7, 'x'], Else: [{ Size: 3 }] }), nothing)
  t.end()
})
