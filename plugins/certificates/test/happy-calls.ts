import type { HappyCalls } from 'busbar/sdk/testing'
import { makeCertificate } from '../../../lab/certificates.js'

export const happyCalls: HappyCalls = {
  'POST /api/certificates': ({ unique }) => {
    const { cert, key } = makeCertificate()
    return { body: { name: unique('shop'), cert_pem: cert, key_pem: key } }
  },
  'DELETE /api/certificates/{certificateId}': async ({ admin, unique }) => {
    const { cert, key } = makeCertificate()
    const { body } = await admin.post('/api/certificates', {
      name: unique('old'),
      cert_pem: cert,
      key_pem: key
    })
    return { ids: { certificateId: body.id as string } }
  },
  'GET /api/certificates/usable': () => ({ query: '?hostname=www.example.com' })
}
