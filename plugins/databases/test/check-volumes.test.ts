import { test } from 'tap'
import { checkVolumeOf, databaseSlug, isCheckVolume, nextVolumeOf, volumeOf } from '../records/slug.js'

test('a drill takes its own volumes away, and no other, whatever a database is called', async t => {
  const id = 'ab12cd34-0000-4000-8000-000000000000'
  for (const base of ['Orders', 'vol check', 'a-vol-check-b', '-vol-check-ab12cd34']) {
    const slug = databaseSlug('shop', base, id)
    t.ok(isCheckVolume(checkVolumeOf(slug, '0f1e2d3c')), slug)
    t.notOk(isCheckVolume(volumeOf(slug)), slug)
    t.notOk(isCheckVolume(nextVolumeOf(slug, '0f1e2d3c')), slug)
  }
})
