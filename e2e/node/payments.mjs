// Drives the official Stripe SDK for Node: `node payments.mjs SCENARIO PORT`.
// An assertion that fails ends it with a non-zero exit code and the reason.
import assert from 'node:assert/strict';
import Stripe from 'stripe';

const [scenario, port] = process.argv.slice(2);

const client = (maxNetworkRetries) =>
  new Stripe('sk_test_123', {host: '127.0.0.1', port, protocol: 'http', maxNetworkRetries, timeout: 15000});

const upload = (size) => ({
  purpose: 'dispute_evidence',
  file: {
    data: Buffer.from(Array.from({length: size}, (_, i) => (i ^ (i >> 8)) & 255)), // every byte value
    name: 'evidence.png',
    type: 'image/png',
  },
});

const ids = async (list) => {
  const all = [];
  for await (const item of list) all.push(item.id);
  return all;
};

const scenarios = {
  // Against stripe-mock, which validates parameters and answers from fixtures.
  async mock() {
    const stripe = client(0);
    const intent = await stripe.paymentIntents.create({amount: 1250, currency: 'eur'});
    assert.equal(intent.amount, 1250);
    const charge = await stripe.charges.create({amount: 900, currency: 'usd', source: 'tok_visa'});
    assert.ok(charge.id);
    const refund = await stripe.refunds.create({charge: charge.id});
    assert.equal(refund.object, 'refund');
    assert.ok((await ids(stripe.customers.list({limit: 3}))).length > 0);
    assert.equal((await stripe.customers.del('cus_1')).deleted, true);
    assert.equal((await stripe.files.create(upload(64 << 10))).object, 'file');
    await assert.rejects(stripe.paymentIntents.create({amount: 5}), (e) => {
      assert.equal(e.type, 'StripeInvalidRequestError');
      assert.equal(e.statusCode, 400);
      assert.match(e.message, /currency/);
      return true;
    });
  },

  // Against the scripted answers: two 503, pages, a declined card, a missing charge.
  async script() {
    const stripe = client(2);
    const intent = await stripe.paymentIntents.create(
      {amount: 1250, currency: 'eur', metadata: {note: 'ünïcode & = + %'}},
      {idempotencyKey: 'order-7/attempt #1', apiVersion: '2024-06-20', stripeAccount: 'acct_9'},
    );
    assert.equal(intent.id, 'pi_1');
    assert.equal(intent.lastResponse.requestId, 'req_77');
    assert.equal(intent.lastResponse.headers['idempotent-replayed'], 'true');
    assert.deepEqual(await ids(stripe.charges.list({limit: 2})), ['ch_1', 'ch_2', 'ch_3', 'ch_4', 'ch_5', 'ch_6']);
    assert.equal((await stripe.files.create(upload(300 << 10))).id, 'file_1');
    await assert.rejects(stripe.charges.create({amount: 5, currency: 'usd'}), (e) => {
      assert.equal(e.type, 'StripeCardError');
      assert.equal(e.statusCode, 402);
      assert.equal(e.decline_code, 'insufficient_funds');
      assert.equal(e.requestId, 'req_402');
      return true;
    });
    await assert.rejects(stripe.charges.retrieve('ch_missing'), (e) => {
      assert.equal(e.statusCode, 404);
      assert.equal(e.code, 'resource_missing');
      return true;
    });
  },
};

await scenarios[scenario]();
// The SDK does not read the body of an answer that it repeats, so that answer's
// socket would keep this process until the timeout.
process.exit(0);
