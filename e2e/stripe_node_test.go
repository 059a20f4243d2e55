package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// nodeDir is a folder with the SDK installed from the lock file. It lies in the
// user's cache, named after the lock file's content, so that one installation
// serves every run and no generated file lies in the tree.
var nodeDir = sync.OnceValues(func() (string, error) {
	lock, err := os.ReadFile("node/package-lock.json")
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cache, "sluice-e2e")
	dir := filepath.Join(parent, fmt.Sprintf("node-%.12x", sha256.Sum256(lock)))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	// Installed aside and moved whole: an interrupted installation is never used.
	aside, err := os.MkdirTemp(parent, "installing-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(aside)
	if err := npmInstall(aside); err != nil {
		return "", err
	}
	if err := os.Rename(aside, dir); err != nil && !os.IsExist(err) {
		return "", err
	}
	return dir, nil
})

func npmInstall(dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w (is npm installed? apt-get install nodejs npm)\n%s", err, out)
	}
	return nil
}

// runStripeNode runs one scenario of node/payments.mjs against addr.
func runStripeNode(t *testing.T, scenario, addr string) {
	t.Helper()
	node := installed(t, "node", "apt-get install nodejs npm")
	script, err := os.ReadFile("node/payments.mjs")
	if err != nil {
		t.Fatal(err)
	}
	// An import is looked up from where the script lies: a copy goes beside the SDK.
	dir, err := os.MkdirTemp(must(t, nodeDir), "run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	output(t, node, writeFile(t, filepath.Join(dir, "payments.mjs"), string(script)), scenario, port)
}

func TestStripeNode_PaymentsReachStripeMock(t *testing.T) {
	runStripeNode(t, "mock", startStripe(t).addr)
}

func TestStripeNode_WhatItSendsArrivesUntouched(t *testing.T) {
	s := startStub(t, stripeScript{failures: 2}.answer)
	g := startGateway(t, oneUpstream(s.url()))
	p := startTap(t, g.addr)
	runStripeNode(t, "script", p.addr)

	got := s.requests()
	if len(got) != 3+3+1+1+1 {
		t.Errorf("the backend got %d requests, want 3 tries, 3 pages, 1 file, 1 declined, 1 missing", len(got))
	}
	wantUntouched(t, p.requests(t), got)
	wantRetried(t, got)
	wantSDKHeaders(t, got)
	for name, want := range map[string]string{
		"Idempotency-Key": "order-7/attempt #1",
		"Stripe-Version":  "2024-06-20",
		"Stripe-Account":  "acct_9",
	} {
		if value := got[0].value(name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
}
